import { Hono } from 'hono';

const app = new Hono();
app.get('/', (context) => context.text(`Hono on Bun ${Bun.version}`));

export default { port: Number(process.env.PORT ?? 3000), fetch: app.fetch };
