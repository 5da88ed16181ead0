const { createClient } = require('@redis/client');
const client = createClient({ url: process.env.REDIS_URL });
client
  .connect()
  .then(() => client.ping())
  .then((answer) => (console.log(answer === 'PONG' ? 'encrypted' : answer), client.destroy()));
