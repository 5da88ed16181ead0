// The npm of this host as the client of the registry: which registry that is, its credentials, proxy and authority, and
// the check of what was downloaded are npm's own.
import { execFile } from 'node:child_process';
import { DriverError, type DriverContext } from '../../core/driver';

const OUTPUT_BYTES_MAX = 16 << 20;
/** What npm may know of our environment: how to find its files and the registry. */
const INHERITED = /^(HOME|https?_proxy|no_proxy|all_proxy|node_extra_ca_certs|ssl_cert_(file|dir)|npm_config_.*)$/i;
/** Those that point at the package that npm started us from. */
const OF_THIS_PACKAGE = /^npm_config_(prefix|local_prefix|global_prefix|global|cache|init_module|userconfig)$/i;

/** npm ended with an error. `output` is for programs to read, never for users: it names paths of the host. */
export class NpmFailed extends Error {
  override readonly name = 'NpmFailed';

  constructor(readonly output: string) {
    super('npm failed');
  }
}

/**
 * Answers what npm printed. `directory` is where it starts and keeps its cache.
 * @throws NpmFailed; DriverError unsupported, transient
 */
export function npm(args: string[], directory: string, ctx: DriverContext): Promise<string> {
  const options = {
    cwd: directory,
    signal: ctx.signal,
    env: environment(directory),
    maxBuffer: OUTPUT_BYTES_MAX,
    killSignal: 'SIGKILL' as const,
  };
  return new Promise((resolve, reject) => {
    execFile('npm', args, options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      if (error.code === 'ENOENT')
        return reject(
          new DriverError(
            'unsupported',
            'The program npm is not installed on this platform. Ask the operator to install it.',
          ),
        );
      if (ctx.signal.aborted) return reject(new DriverError('transient', 'The npm registry did not answer in time.'));
      reject(new NpmFailed(`${stderr}\n${stdout}`));
    });
  });
}

function environment(directory: string): NodeJS.ProcessEnv {
  const ours = Object.entries(process.env).filter(([name]) => INHERITED.test(name) && !OF_THIS_PACKAGE.test(name));
  const userconfig = process.env.NPM_CONFIG_USERCONFIG ?? process.env.npm_config_userconfig;
  return {
    PATH: `${process.env.PATH ?? ''}:/usr/local/bin:/usr/bin:/bin`,
    LC_ALL: 'C',
    ...Object.fromEntries(ours),
    ...(userconfig !== undefined && { npm_config_userconfig: userconfig }),
    npm_config_cache: `${directory}/npm-cache`,
    npm_config_update_notifier: 'false',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_engine_strict: 'false',
    npm_config_ignore_scripts: 'true',
    npm_config_loglevel: 'error',
    npm_config_fetch_retries: '2',
    npm_config_fetch_retry_mintimeout: '500',
    npm_config_fetch_retry_maxtimeout: '3000',
  };
}
