// PostGraphile 5 on the same tables, as its manual sets it up (the Amber preset), on plain node http.
//   node tools/bench/references/postgraphile.js <address of the database>     prints its port
import { createServer, type Server } from 'node:http';
import { loadPackage } from './packages';
import { announce, usage } from './tables';

interface Modules {
  postgraphile: {
    postgraphile(preset: object): { createServ(grafserv: unknown): { addTo(server: Server): Promise<void> } };
  };
  amber: { PostGraphileAmberPreset: object };
  adaptor: { makePgService(options: object): object };
  node: { grafserv: unknown };
}

const [, , url = ''] = process.argv;
const load = <Name extends keyof Modules>(name: string): Modules[Name] => loadPackage(name) as Modules[Name];

async function main(): Promise<void> {
  const { postgraphile } = load<'postgraphile'>('postgraphile');
  console.warn = () => {}; // it tells at length of types of the system's own tables
  const preset = {
    extends: [load<'amber'>('postgraphile/presets/amber').PostGraphileAmberPreset],
    // It would hide what only partial indexes find, and ours leave deleted rows out.
    disablePlugins: ['PgIndexBehaviorsPlugin'],
    pgServices: [
      load<'adaptor'>('postgraphile/adaptors/pg').makePgService({
        connectionString: url,
        schemas: ['public'],
        poolConfig: { max: 10 },
        pubsub: false,
      }),
    ],
    grafserv: { graphqlPath: '/graphql', graphiql: false, websockets: false, watch: false },
    grafast: { explain: false },
  };
  const server = createServer();
  await postgraphile(preset).createServ(load<'node'>('postgraphile/grafserv/node').grafserv).addTo(server);
  answerUsage(server);
  announce(server);
}

/** In front of what PostGraphile answers. */
function answerUsage(server: Server): void {
  const others = server.listeners('request') as ((...args: unknown[]) => void)[];
  server.removeAllListeners('request');
  server.on('request', (request, response) => {
    if (request.url !== '/usage') return others.forEach((listener) => listener(request, response));
    const text = JSON.stringify(usage());
    response
      .writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) })
      .end(text);
  });
}

void main();
