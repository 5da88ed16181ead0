// npm start: settings, database, migrations, first boot, service. One line and exit code 1 when it can't.
import { setFlagsFromString } from 'node:v8';
import { firstBoot, firstBootText } from './first_boot';
import { runProgram } from './program';
import { startService } from './service';

// By default V8 lets the heap grow to several times of what lives before it looks for garbage: under load 215 MiB resident
// for 45 MiB that live. This and the smaller space for new objects (package.json, start) keep it near 155 MiB for about a
// tenth more work on lists (docs/PERFORMANCE.md).
setFlagsFromString('--heap-growing-percent=60');

runProgram('npm start', async (platform) => {
  const service = await startService(platform);
  const first = await firstBoot(platform);
  if (first) process.stdout.write(firstBootText(first));
  platform.log.info({ address: service.config.baseUrl, admin_port: service.adminPort }, 'ready');
  return () => service.close();
});
