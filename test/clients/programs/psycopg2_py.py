import os, psycopg2
connection = psycopg2.connect(os.environ['DATABASE_URL'])
cursor = connection.cursor()
cursor.execute('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
print('encrypted' if cursor.fetchone()[0] else 'plain')
