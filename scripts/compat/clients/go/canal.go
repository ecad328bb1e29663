package main

import (
	"fmt"
	"os"

	"github.com/go-mysql-org/go-mysql/canal"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

type handler struct {
	canal.DummyEventHandler
	byGtid bool
}

func canalOf(arguments arguments) error {
	config := canal.NewDefaultConfig()
	config.Addr = fmt.Sprintf("127.0.0.1:%d", arguments.port)
	config.User, config.Password, config.TLSConfig = arguments.user, arguments.password, arguments.tls
	config.ServerID = uint32(os.Getpid())
	// The stream alone: what mysqldump would give stands in the log.
	config.Dump.ExecutionPath = ""
	config.IncludeTableRegex = []string{`compat\.t$`}
	follower, err := canal.NewCanal(config)
	if err != nil {
		return err
	}
	follower.SetEventHandler(&handler{byGtid: arguments.place.gtids != nil})
	if arguments.place.gtids != nil {
		return follower.StartFromGTID(arguments.place.gtids)
	}
	return follower.RunFrom(arguments.place.position)
}

func (h *handler) OnRow(event *canal.RowsEvent) error {
	if event.Action == canal.InsertAction {
		for _, row := range event.Rows {
			printRow(row)
		}
	}
	return nil
}

// What it would have its user keep.
func (h *handler) OnPosSynced(_ *replication.EventHeader, position mysql.Position, gtids mysql.GTIDSet, _ bool) error {
	if !h.byGtid {
		fmt.Printf("at %s:%d\n", position.Name, position.Pos)
	} else if gtids != nil {
		fmt.Println("at " + gtids.String())
	}
	return nil
}

func (h *handler) String() string { return "compat" }
