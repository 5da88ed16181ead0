// The embedded name server as one driver over a directory of zones, for tests of conformance: each call opens it, so
// that what one process has written another one serves.
import type { NameserverDriver } from '../../../engines/dns/nameserver';
import { openEmbeddedNameserver, type EmbeddedNameserver } from '../../../engines/dns/driver';
import { freePort } from '../processes/free_port';

interface Options {
  directory: string;
}

const sealer = {
  prefix: '',
  seal: (text: string) => Buffer.from(text).toString('base64'),
  open: (sealed: string) => Buffer.from(sealed, 'base64').toString(),
};
const nobody = async (): Promise<string[]> => [];

async function open({ directory }: Options): Promise<EmbeddedNameserver> {
  const ports = [await freePort()];
  return openEmbeddedNameserver({
    ...{ directory, sealer, addresses: ['127.0.0.1'], ports, responsesPerSecond: 1_000_000, own: [] },
    questions: { a: nobody, aaaa: nobody },
  });
}

/** @returns a driver that opens the server for each call, and closes it behind it */
function files(options: Options): NameserverDriver {
  const use = async <T>(work: (driver: NameserverDriver) => Promise<T>): Promise<T> => {
    const server = await open(options);
    try {
      return await work(server);
    } finally {
      await server.close();
    }
  };
  return {
    name: 'embedded',
    fingerprint: (ctx) => use((driver) => driver.fingerprint(ctx)),
    observe: (r, ctx) => use((driver) => driver.observe(r, ctx)),
    ensure: (r, observation, ctx) => use((driver) => driver.ensure(r, observation, ctx)),
    remove: (r, observation, ctx) => use((driver) => driver.remove(r, observation, ctx)),
    async *list(ctx) {
      yield* await use(async (driver) => {
        const found = [];
        for await (const owned of driver.list(ctx)) found.push(owned);
        return found;
      });
    },
    takeCounters: (ctx) => use((driver) => driver.takeCounters(ctx)),
  };
}

export const openFiles = Object.assign(files, {
  async listening(options: Options) {
    const server = await open(options);
    return { driver: server as NameserverDriver, port: server.port as number, close: () => server.close() };
  },
});
