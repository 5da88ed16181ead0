// Clients of PostgreSQL as applications in Go have them: by the address, and what the environment says beside it.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	_ "github.com/lib/pq"
)

const query = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"

func main() {
	address := os.Getenv("DATABASE_URL")
	var encrypted bool
	if os.Args[1] == "pq" {
		db, err := sql.Open("postgres", address)
		check(err)
		check(db.QueryRow(query).Scan(&encrypted))
	} else {
		connection, err := pgx.Connect(context.Background(), address)
		check(err)
		check(connection.QueryRow(context.Background(), query).Scan(&encrypted))
	}
	if encrypted {
		fmt.Println("encrypted")
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
