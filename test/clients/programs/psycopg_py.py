import os, psycopg
with psycopg.connect(os.environ['DATABASE_URL']) as connection:
    row = connection.execute('select ssl from pg_stat_ssl where pid = pg_backend_pid()').fetchone()
    print('encrypted' if row[0] else 'plain')
