package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

type syncer struct {
	// With the transaction that runs; nil by position.
	gtids    *mysql.MysqlGTIDSet
	position mysql.Position
}

func syncerOf(arguments arguments) error {
	stream := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: uint32(os.Getpid()), Host: "127.0.0.1", Port: arguments.port,
		User: arguments.user, Password: arguments.password, TLSConfig: arguments.tls,
	})
	follower := syncer{position: arguments.place.position}
	var streamer *replication.BinlogStreamer
	var err error
	if arguments.place.gtids != nil {
		follower.gtids = arguments.place.gtids.Clone().(*mysql.MysqlGTIDSet)
		streamer, err = stream.StartSyncGTID(arguments.place.gtids)
	} else {
		streamer, err = stream.StartSync(arguments.place.position)
	}
	if err != nil {
		return err
	}
	for {
		event, err := streamer.GetEvent(context.Background())
		if err != nil {
			return err
		}
		if err := follower.take(event, event.Header.LogPos); err != nil {
			return err
		}
	}
}

// next: where the event ends; for one of a payload, where the payload does.
func (s *syncer) take(event *replication.BinlogEvent, next uint32) error {
	switch body := event.Event.(type) {
	case *replication.RotateEvent:
		s.position.Name = string(body.NextLogName)
	case *replication.GTIDEvent:
		gtid, err := body.GTIDNext()
		if err != nil {
			return err
		}
		if s.gtids != nil {
			return s.gtids.Update(gtid.String())
		}
	case *replication.TransactionPayloadEvent:
		for _, inner := range body.Events {
			if err := s.take(inner, next); err != nil {
				return err
			}
		}
	case *replication.RowsEvent:
		if body.Type() == replication.EnumRowsEventTypeInsert && string(body.Table.Table) == "t" {
			for _, row := range body.Rows {
				printRow(row)
			}
		}
	case *replication.XIDEvent:
		if s.gtids != nil {
			fmt.Println("at " + s.gtids.String())
		} else {
			fmt.Printf("at %s:%d\n", s.position.Name, next)
		}
	}
	return nil
}
