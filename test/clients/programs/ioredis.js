const Redis = require('ioredis');
const redis = new Redis(process.env.REDIS_URL);
redis.ping().then((answer) => (console.log(answer === 'PONG' ? 'encrypted' : answer), redis.disconnect()));
