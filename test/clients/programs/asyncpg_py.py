import asyncio, os, asyncpg
async def main():
    connection = await asyncpg.connect(os.environ['DATABASE_URL'])
    encrypted = await connection.fetchval('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
    print('encrypted' if encrypted else 'plain')
    await connection.close()
asyncio.run(main())
