// npm run probe: checks the targets of observers from another region, and reports to the platform at PROBE_URL.
import { setTimeout as sleep } from 'node:timers/promises';
import { isIP } from 'node:net';
import { isPrivateHost } from '../core/protocols/addresses';
import { helpText, loadConfig, type Config } from '../core/config';
import { createLog, type Logger } from '../core/log/log';
import { StartupError } from '../core/startup_error';
import { startProbe, type Probe } from './agents/observers/probe';
import { ProbeRefused } from './agents/observers/probe_store';
import { exitOnSignal, printError, stopOnSignal } from './program';

const RETRY_MS = 2_000;

async function main(): Promise<void> {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) return void process.stdout.write(helpText());
  if (args.length)
    throw new StartupError(
      `unknown argument ${args[0]}; settings are environment variables, see npm run probe -- --help`,
    );
  const config = loadConfig(process.env);
  const target = targetOf(config);
  const log = createLog(config.logLevel);
  exitOnSignal();
  const probe = await connect(config, target, log);
  log.info({ region: probe.region }, 'ready');
  stopOnSignal({ log, close: () => Promise.resolve() }, probe);
}

/** @throws StartupError */
function targetOf({ probeUrl, probeKey, allowPrivateAddresses }: Config): { url: string; key: string } {
  if (probeUrl === null || probeKey === null)
    throw new StartupError('PROBE_URL and PROBE_KEY are needed; `platform probe create --region …` makes a key');
  const { protocol, hostname } = new URL(probeUrl);
  // The key, and the headers of checks, are secrets.
  if (protocol !== 'https:' && !isLocal(hostname) && !allowPrivateAddresses)
    throw new StartupError('PROBE_URL must begin with https://');
  return { url: probeUrl, key: probeKey };
}

function isLocal(host: string): boolean {
  return host === 'localhost' || (isIP(host) > 0 && isPrivateHost(host));
}

/** Waits for a platform that does not answer yet. @throws StartupError where it refuses the key */
async function connect(config: Config, target: { url: string; key: string }, log: Logger): Promise<Probe> {
  for (;;) {
    try {
      return await startProbe(config, target, log);
    } catch (error) {
      if (error instanceof ProbeRefused) throw new StartupError(error.message);
      log.warn({ err: error }, 'the platform does not answer; trying again');
      await sleep(RETRY_MS);
    }
  }
}

main().catch((error: unknown) => {
  printError(error);
  process.exit(1);
});
