// A client of MariaDB as an application in Go has it: by the parts of the address.
package main

import (
	"database/sql"
	"fmt"
	"log"
	"net/url"
	"os"

	"github.com/go-sql-driver/mysql"
)

func main() {
	address, err := url.Parse(os.Getenv("DATABASE_URL"))
	check(err)
	for _, tls := range []string{"", "true"} {
		config := mysql.NewConfig()
		config.Net, config.Addr, config.DBName = "tcp", address.Host, address.Path[1:]
		config.User = address.User.Username()
		config.Passwd, _ = address.User.Password()
		config.TLSConfig = tls
		db, err := sql.Open("mysql", config.FormatDSN())
		check(err)
		var name, cipher string
		check(db.QueryRow("show session status like 'Ssl_cipher'").Scan(&name, &cipher))
		if cipher == "" {
			fmt.Println("plain")
		} else {
			fmt.Println("encrypted")
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
