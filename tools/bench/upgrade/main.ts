// npm run bench:upgrade: what visitors and clients notice while the service is replaced by another version, and back.
//   npm run bench:upgrade -- [--from=FOLDER] [--to=FOLDER] [--seconds=10]
// A folder is a checkout with dist/, or the `app` of an unpacked release; without one, this checkout. 200 requests a
// second go to an application (HTTP, HTTPS on kept and new connections, HTTP/2), and 20 to the API, of which 5 write.
// The exit code is 1 where one was lost: answered by nothing, or by something else than 503 with Retry-After below 3 s.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { printLine } from '../run';
import { openLoads, type Loads } from './loads';
import { startVersion, type Site, type Version } from './version';

const HERE = path.resolve(__dirname, '../../../..');
const NAME = 'platform.example.com';

const { values } = parseArgs({
  options: {
    from: { type: 'string', default: HERE },
    to: { type: 'string', default: HERE },
    seconds: { type: 'string', default: '10' },
  },
});

void main();

async function main(): Promise<void> {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'platform-upgrade-'));
  chmodSync(directory, 0o711);
  const site: Site = { directory, name: NAME, ...certificateIn(directory) };
  let version: Version | undefined;
  let loads: Loads | undefined;
  try {
    version = await startVersion(values.from, site);
    const host = await version.deploy();
    loads = await openLoads(version, host);
    for (const [step, folder] of [
      ['upgrade', values.to],
      ['way back', values.from],
    ] as const) {
      await sleep(Number(values.seconds) * 1000);
      const began = Date.now();
      await version.stop();
      version = await startVersion(folder, site);
      printLine(`${step}: another version was ready after ${((Date.now() - began) / 1000).toFixed(1)} s`);
    }
    await sleep(Number(values.seconds) * 1000);
    process.exitCode = (await loads.report(version)) ? 0 : 1;
  } finally {
    loads?.end();
    await version?.remove();
    rmSync(directory, { recursive: true, force: true });
  }
}

function certificateIn(directory: string): { certificate: string; key: string } {
  const [certificate, key] = [path.join(directory, 'certificate.pem'), path.join(directory, 'key.pem')];
  const names = `subjectAltName=DNS:${NAME},DNS:*.apps.example.com`;
  const words = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1'];
  const files = ['-keyout', key, '-out', certificate];
  execFileSync('openssl', [...words, '-subj', '/CN=example.com', '-addext', names, ...files], { stdio: 'ignore' });
  return { certificate, key };
}
