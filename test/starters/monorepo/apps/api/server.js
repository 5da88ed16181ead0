const Koa = require('koa');
const { greet } = require('@starter/greeting');

const app = new Koa();
app.use((context) => {
  context.body = greet('workspace');
});
app.listen(process.env.PORT || 3000);
