import os, sqlalchemy
for options in [{}, {'ssl_mode': 'VERIFY_IDENTITY', 'ssl': {'ca': os.environ['DATABASE_CA_FILE']}}]:
    with sqlalchemy.create_engine(os.environ['DATABASE_URL'], connect_args=options).connect() as connection:
        row = connection.execute(sqlalchemy.text("show session status like 'Ssl_cipher'")).one()
        print('encrypted' if row[1] else 'plain', flush=True)
