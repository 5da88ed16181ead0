// npm run dns: a further name server, any number of them.
import './threads';
import { createRequire } from 'node:module';
import { runProgram } from './program';
import type { EmbeddedNameserver } from '../engines/dns';
import type * as OfDns from './start_dns';

const load = createRequire(__filename);
const program = (): typeof OfDns => load('./start_dns') as typeof OfDns;

runProgram<EmbeddedNameserver>(
  'npm run dns',
  async (platform, server) => {
    const { port, close } = await program().startDns(platform, server);
    platform.log.info({ port }, 'the name server is ready');
    return { close };
  },
  () => {},
  (config) => program().openDns(config),
);
