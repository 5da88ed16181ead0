import Fastify from 'fastify';

const app = Fastify({ logger: true });
app.get('/', async () => ({ hello: 'fastify', node: process.version }));
await app.listen({ port: Number(process.env.PORT ?? 3000), host: '0.0.0.0' });
