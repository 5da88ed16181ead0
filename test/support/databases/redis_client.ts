// A client of a server as a tenant has it: over TLS, with a user and a password, or a password alone.
import { createClient } from '@redis/client';
import type { DatabaseServer } from '../../../drivers/database';

export type TenantClient = ReturnType<typeof createClient>;

/** @param username undefined: a password alone, which is `AUTH password` @throws the error of the server */
export async function connectTenant(
  of: DatabaseServer,
  password: string,
  username: string | undefined,
): Promise<TenantClient> {
  const client = createClient({
    ...(username === undefined ? {} : { username }),
    ...{ password, disableClientInfo: true, RESP: 2 },
    socket: {
      ...{ host: '127.0.0.1', port: of.port, tls: true, ca: of.tls.certificate, servername: 'localhost' },
      ...{ reconnectStrategy: false, connectTimeout: 2_000 },
    },
  });
  client.on('error', () => undefined);
  await client.connect();
  return client as unknown as TenantClient;
}

/** Answers, in their order; of a refusal its message. A log-in that is refused is the only answer. */
export async function tenantAnswers(
  of: DatabaseServer,
  login: { username?: string; password: string },
  commands: (string | Buffer)[][],
): Promise<unknown[]> {
  try {
    const client = await connectTenant(of, login.password, login.username);
    const answers: unknown[] = [];
    for (const words of commands)
      answers.push(await client.sendCommand(words as string[]).catch((error: Error) => error.message));
    client.destroy();
    return answers;
  } catch (error) {
    return [(error as Error).message];
  }
}
