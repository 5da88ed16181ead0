require 'pg'

connection = PG.connect(ENV['DATABASE_URL'])
ssl = connection.exec('select ssl from pg_stat_ssl where pid = pg_backend_pid()').getvalue(0, 0)
puts 'encrypted' if ssl == 't'
