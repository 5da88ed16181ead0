// The npm of this host as registry client: npm itself resolves the registry, credentials, proxy and authorities, and
// verifies downloads.
import { execFile } from 'node:child_process';
import { DriverError, type DriverContext } from '../../core/driver';

const OUTPUT_BYTES_MAX = 16 << 20;
/** Inherited variables: location of npm's files, and registry settings. */
const INHERITED = /^(HOME|https?_proxy|no_proxy|all_proxy|node_extra_ca_certs|ssl_cert_(file|dir)|npm_config_.*)$/i;
/** Set by the npm that started this process, for its own package. */
const OF_THIS_PACKAGE = /^npm_config_(prefix|local_prefix|global_prefix|global|cache|init_module|userconfig)$/i;

/** npm failed. `output` is parsed by programs, never shown to users: it contains host paths. */
export class NpmFailed extends Error {
  override readonly name = 'NpmFailed';

  constructor(readonly output: string) {
    super('npm failed');
  }
}

/**
 * Runs npm and returns its output. `directory` is its working directory, and contains its cache.
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
