// psql with the credentials of a database, none of which is in its arguments.
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { EXIT, Failure } from '../failure';
import { sendRequest } from '../http/send';
import { noteExitCode } from '../outcome';

export interface Endpoint {
  name: string;
  access: string;
  host: string;
  port: number;
  connection_string: string;
}

export interface Credentials {
  username: string;
  password: string;
  database_name: string | null;
  endpoints: Endpoint[];
}

export function findEndpoint({ endpoints }: Credentials, name: string | undefined): Endpoint {
  const found = name
    ? endpoints.find((one) => one.name === name)
    : (endpoints.find(({ access }) => access === 'public') ?? endpoints[0]);
  if (found) return found;
  const names = endpoints.map((one) => one.name).join(', ') || 'none';
  throw new Failure(`The database has no such endpoint. There are: ${names}.`, EXIT.notFound);
}

/** Ends with the exit code of psql. */
export async function runPsql(
  server: string,
  credentials: Credentials,
  endpoint: Endpoint,
  args: readonly string[],
): Promise<void> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'svc-psql-'));
  try {
    const env = { ...process.env, ...connectionOf(credentials, endpoint), ...(await trust(server, directory)) };
    delete (env as NodeJS.ProcessEnv).SVC_TOKEN;
    noteExitCode(await runProgram('psql', args, env));
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

function connectionOf({ password }: Credentials, endpoint: Endpoint): Record<string, string> {
  const { username, pathname, searchParams } = new URL(endpoint.connection_string);
  return {
    PGHOST: endpoint.host,
    PGPORT: String(endpoint.port),
    // During a rotation the login has a name of its own, which the address has.
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: password,
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
    PGSSLMODE: searchParams.get('sslmode') ?? 'prefer',
  };
}

/** The authority of the platform's databases, where the server shows it; what the person has set wins. */
async function trust(server: string, directory: string): Promise<Record<string, string>> {
  const { PGSSLMODE, PGSSLROOTCERT } = process.env;
  if (PGSSLMODE || PGSSLROOTCERT) return { ...(PGSSLMODE && { PGSSLMODE }), ...(PGSSLROOTCERT && { PGSSLROOTCERT }) };
  const { status, text } = await sendRequest({ method: 'GET', url: new URL('/databases/ca.pem', server) });
  if (status !== 200 || !text.includes('BEGIN CERTIFICATE')) return {};
  const file = path.join(directory, 'ca.pem');
  fs.writeFileSync(file, text, { mode: 0o600 });
  return { PGSSLROOTCERT: file, PGSSLMODE: 'verify-full' };
}

function runProgram(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(program, args, { stdio: 'inherit', env });
  // Ctrl-C is for the program: it cancels a query.
  const ignoreInterrupt = (): void => {};
  process.on('SIGINT', ignoreInterrupt);
  return new Promise((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ENOENT'
          ? new Failure(`${program} is not installed on this computer.`, EXIT.failed, [
              'Its package: postgresql-client',
            ])
          : error,
      ),
    );
    child.once('close', (code) => {
      process.removeListener('SIGINT', ignoreInterrupt);
      resolve(code ?? EXIT.failed);
    });
  });
}
