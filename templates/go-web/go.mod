module example.com/go-web

go 1.19
