// npm start: settings, database, migrations, first boot, service. One line and exit code 1 when it can't.
import './heap';
import { startCluster } from './cluster';
import { firstBoot, firstBootText } from './first_boot';
import { runProgram } from './program';
import { startService } from './service';

runProgram('npm start', async (platform) => {
  const service = platform.config.webConcurrency > 1 ? await startCluster(platform) : await startService(platform);
  const first = await firstBoot(platform);
  if (first) process.stdout.write(firstBootText(first));
  platform.log.info({ address: service.config.baseUrl, admin_port: service.adminPort }, 'ready');
  return service;
});
