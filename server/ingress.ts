// npm run ingress: a further ingress for applications on a cluster, any number of them.
import './threads';
import { createRequire } from 'node:module';
import { runProgram } from './program';
import type * as OfIngress from './start_ingress';

const load = createRequire(__filename);

runProgram('npm run ingress', async (platform) => {
  const { startIngress } = load('./start_ingress') as typeof OfIngress;
  const { ports, close } = await startIngress(platform);
  platform.log.info(ports, 'the ingress is ready');
  return { close };
});
