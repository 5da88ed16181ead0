import os, ssl
import sqlalchemy
address = os.environ['DATABASE_URL'].replace('mysql://', 'mysql+pymysql://', 1)
for options in [{}, {'ssl': ssl.create_default_context()}]:
    with sqlalchemy.create_engine(address, connect_args=options).connect() as connection:
        row = connection.execute(sqlalchemy.text("show session status like 'Ssl_cipher'")).one()
        print('encrypted' if row[1] else 'plain', flush=True)
