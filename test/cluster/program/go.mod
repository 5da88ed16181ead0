module platform-api.test/program

go 1.19
