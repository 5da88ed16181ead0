// Credentials for registries of others: the variable DOCKER_AUTH_CONFIG of the application holds what `docker login`
// writes to its config.json. It is sealed as every variable is, and read when an image is pulled.

const CREDENTIALS_VARIABLE = 'DOCKER_AUTH_CONFIG';

/** Names under which Docker stores the credentials of Docker Hub. */
const HUB_NAMES = ['docker.io', 'index.docker.io', 'https://index.docker.io/v1/', 'registry-1.docker.io'];

/** null where the variable is not set, is not a Docker config document, or has no entry for the host. */
export function credentialsFor(
  host: string,
  variables: Readonly<Record<string, string>>,
): { username: string; password: string } | null {
  const auths = authsOf(variables[CREDENTIALS_VARIABLE] ?? '');
  const names = host === 'docker.io' ? HUB_NAMES : [host, `https://${host}`, `https://${host}/`, `http://${host}`];
  const entry = names.map((name) => auths[name]).find((found) => typeof found === 'object' && found !== null);
  const { auth, username, password } = (entry ?? {}) as Record<string, unknown>;
  if (typeof auth === 'string') return parseAuth(Buffer.from(auth, 'base64').toString('utf8'));
  return typeof username === 'string' && typeof password === 'string' ? { username, password } : null;
}

/** A document of this form: what the variable holds, and a login of the platform's own registry. */
export function authDocument(
  variables: Readonly<Record<string, string>>,
  own: { host: string; username: string; password: string } | null,
): string {
  const auths = authsOf(variables[CREDENTIALS_VARIABLE] ?? '');
  if (own === null) return JSON.stringify({ auths });
  const auth = Buffer.from(`${own.username}:${own.password}`).toString('base64');
  return JSON.stringify({ auths: { ...auths, [own.host]: { auth } } });
}

function authsOf(text: string): Record<string, unknown> {
  try {
    const { auths } = JSON.parse(text) as { auths?: unknown };
    return typeof auths === 'object' && auths !== null ? (auths as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function parseAuth(text: string): { username: string; password: string } | null {
  const colon = text.indexOf(':');
  return colon > 0 ? { username: text.slice(0, colon), password: text.slice(colon + 1) } : null;
}
