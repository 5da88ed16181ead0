import os
import redis
print('encrypted' if redis.Redis.from_url(os.environ['REDIS_URL']).ping() else 'wrong')
