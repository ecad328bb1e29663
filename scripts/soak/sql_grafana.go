// Asks a Flight SQL server over the samples what Grafana's data source asks: a login, the lists of its query builder, the statement
// of its button "Save & test", statements as its macros write them. Ends with 1 if an answer has a column that it can't show.
//
// usage: sql_grafana ADDRESS USER PASSWORD
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Statements of panels: a series by $__dateBin and $__timeFilter, rows with a time, numbers of other types.
var statements = []string{
	`select 1`,
	`SELECT date_bin(interval '60 second', committed_at, timestamp '1970-01-01T00:00:00Z') AS time, schema, count(*) AS rows
     FROM changes WHERE committed_at >= '2020-01-01T00:00:00Z' AND committed_at <= '2030-01-01T00:00:00Z' GROUP BY 1, 2 ORDER BY 1`,
	`SELECT committed_at::timestamp AS time, gtid, statement FROM transactions ORDER BY 1 LIMIT 10`,
	`SELECT committed_at::timestamp AS time, after.salary::bigint AS salary, after.salary::double / 3 AS third
     FROM employees.salaries WHERE after.salary IS NOT NULL LIMIT 10`,
}

func check(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

// What the data source makes a field of. Its times are nanoseconds, whatever the column's unit is.
func isShown(kind arrow.DataType) bool {
	switch kind := kind.(type) {
	case *arrow.StringType, *arrow.Float64Type, *arrow.Uint32Type, *arrow.Int64Type, *arrow.BooleanType, *arrow.DenseUnionType:
		return true
	case *arrow.TimestampType:
		return kind.Unit == arrow.Nanosecond
	}
	return false
}

func main() {
	client, err := flightsql.NewClient(os.Args[1], nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check("connect", err)
	ctx, err := client.Client.AuthenticateBasicToken(context.Background(), os.Args[2], os.Args[3])
	check("log in", err)
	// The rows of an answer; each batch is shown to a function.
	answer := func(what string, info *flight.FlightInfo, err error, each func(arrow.RecordBatch)) int64 {
		check(what, err)
		if len(info.Endpoint) != 1 {
			check(what, fmt.Errorf("%d endpoints, expected 1", len(info.Endpoint)))
		}
		reader, err := client.DoGet(ctx, info.Endpoint[0].Ticket)
		check(what, err)
		defer reader.Release()
		rows := int64(0)
		for reader.Next() {
			rows += reader.RecordBatch().NumRows()
			each(reader.RecordBatch())
		}
		check(what, reader.Err())
		if rows == 0 {
			check(what, fmt.Errorf("no rows"))
		}
		return rows
	}
	shown := func(what string) func(arrow.RecordBatch) {
		return func(batch arrow.RecordBatch) {
			for _, field := range batch.Schema().Fields() {
				if !isShown(field.Type) {
					check(what, fmt.Errorf("column %s is of type %s", field.Name, field.Type))
				}
			}
		}
	}

	info, err := client.GetSqlInfo(ctx, []flightsql.SqlInfo{})
	fmt.Println("facts of the server:", answer("facts", info, err, func(arrow.RecordBatch) {}))
	info, err = client.GetTables(ctx, &flightsql.GetTablesOpts{TableTypes: []string{"BASE TABLE"}})
	fmt.Println("tables:", answer("tables", info, err, shown("tables")))
	table := "salaries"
	info, err = client.GetTables(ctx, &flightsql.GetTablesOpts{TableNameFilterPattern: &table, IncludeSchema: true})
	answer("columns", info, err, func(batch arrow.RecordBatch) {
		column := batch.Column(batch.Schema().FieldIndices("table_schema")[0]).(*array.Binary)
		schema, err := flight.DeserializeSchema(column.Value(0), memory.DefaultAllocator)
		check("columns", err)
		fmt.Println("columns of salaries:", len(schema.Fields()))
	})
	for _, statement := range statements {
		info, err := client.Execute(ctx, statement)
		fmt.Println(answer(statement, info, err, shown(statement)), "rows:", statement)
	}
}
