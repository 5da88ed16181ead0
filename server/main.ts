// npm start: settings, database, migrations, first boot, service. One line and exit code 1 when it can't.
import './heap';
import './threads';
import { createRequire } from 'node:module';
import { writeText } from '../core/log';
import type * as OfCluster from './cluster/primary';
import type * as OfFirstBoot from './first_boot';
import { runProgram } from './program';
import type * as OfService from './service';

const load = createRequire(__filename);

runProgram('npm start', async (platform) => {
  const start =
    platform.config.webConcurrency > 1
      ? (load('./cluster/primary') as typeof OfCluster).startCluster
      : (load('./service') as typeof OfService).startService;
  const { firstBoot, firstBootText, undoFirstBoot } = load('./first_boot') as typeof OfFirstBoot;
  let first: OfFirstBoot.FirstKey | null = null;
  const service = await start(platform, async () => {
    // With PORT=0 the address, which stands beside the key, is known only when the service listens.
    if (platform.config.port !== 0) first = await firstBoot(platform);
  }).catch(async (error: unknown) => {
    if (first) await undoFirstBoot(platform, first);
    throw error;
  });
  first ??= await firstBoot(platform);
  const output = process.stdout.isTTY ? 'terminal' : 'log';
  const welcome = first && firstBootText(first, await platform.facts(), platform.config.dataDir, output);
  platform.log.info({ address: service.config.baseUrl, admin_port: service.adminPort }, 'ready');
  // Behind the lines of the log, where it stays in sight.
  if (welcome) writeText(platform.log, welcome);
  return service;
});
