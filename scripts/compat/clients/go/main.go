// go-mysql: prints the rows of compat.t and where to go on; see crates/interfaces/cli/tests/compat/clients.
//
// syncer.go is its syncer, the stream of events; canal.go its canal, which knows tables.
package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Where to begin: one of both.
type place struct {
	gtids    mysql.GTIDSet
	position mysql.Position
}

type arguments struct {
	port     uint16
	user     string
	password string
	place    place
	// nil without TLS.
	tls *tls.Config
}

func parse(words []string) (arguments, error) {
	var parsed arguments
	if len(words) != 5 {
		return parsed, errors.New("five arguments")
	}
	port, err := strconv.ParseUint(words[0], 10, 16)
	if err != nil {
		return parsed, err
	}
	parsed = arguments{port: uint16(port), user: words[1], password: words[2]}
	if os.Getenv("TLS") != "" {
		parsed.tls = &tls.Config{InsecureSkipVerify: true}
	}
	if words[3] == "gtid" {
		parsed.place.gtids, err = mysql.ParseMysqlGTIDSet(words[4])
		return parsed, err
	}
	colon := strings.LastIndexByte(words[4], ':')
	if colon < 0 {
		return parsed, errors.New("no place")
	}
	offset, err := strconv.ParseUint(words[4][colon+1:], 10, 32)
	parsed.place.position = mysql.Position{Name: words[4][:colon], Pos: uint32(offset)}
	return parsed, err
}

func printRow(row []any) {
	columns := make([]string, len(row))
	for i, value := range row {
		switch value := value.(type) {
		case nil:
			columns[i] = "NULL"
		case []byte:
			columns[i] = string(value)
		default:
			columns[i] = fmt.Sprint(value)
		}
	}
	fmt.Println("row " + strings.Join(columns, "\t"))
}

func main() {
	parsed, err := parse(os.Args[1:])
	if err == nil {
		switch os.Getenv("AS") {
		case "canal":
			err = canalOf(parsed)
		default:
			err = syncerOf(parsed)
		}
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}
