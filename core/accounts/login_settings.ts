// Reads login providers from settings with operator-defined names: LOGIN_GOOGLE_ISSUER.
import { formats } from '../formats/formats';
import type { LoginProviderSetting } from './login_provider';

const NAME = /^LOGIN_([A-Z][A-Z0-9_]{0,29})_(ISSUER|CLIENT_ID|CLIENT_SECRET|TITLE|TYPE)$/;
const LOOPBACK = ['127.0.0.1', '[::1]', 'localhost'];
const GITHUB = 'https://github.com';
const PROVIDERS_MAX = 10;

type Given = Partial<Record<'ISSUER' | 'CLIENT_ID' | 'CLIENT_SECRET' | 'TITLE' | 'TYPE', string>>;

/** @param mistakes receives a message for each missing or malformed setting, without its value */
export function readLoginProviders(env: NodeJS.ProcessEnv, mistakes: string[]): readonly LoginProviderSetting[] {
  const given = new Map<string, Given>();
  for (const [name, value] of Object.entries(env)) {
    const [, provider, part] = NAME.exec(name) ?? [];
    const text = value?.trim();
    if (provider && part && text) given.set(provider, { ...given.get(provider), [part]: text });
  }
  const found = [...given].flatMap(([name, values]) => readProvider(name, values, mistakes) ?? []);
  if (found.length > PROVIDERS_MAX) mistakes.push(`LOGIN_<NAME>_ISSUER names more than ${PROVIDERS_MAX} providers`);
  return Object.freeze(found.sort((one, other) => one.title.localeCompare(other.title, 'en')));
}

function readProvider(name: string, values: Given, mistakes: string[]): LoginProviderSetting | null {
  const prefix = `LOGIN_${name}`;
  const { ISSUER: issuer, CLIENT_ID: client_id, CLIENT_SECRET: client_secret } = values;
  const title = values.TITLE ?? titleOf(name);
  const wrong = [
    ...(['ISSUER', 'CLIENT_ID', 'CLIENT_SECRET'] as const)
      .filter((part) => values[part] === undefined)
      .map((part) => `${prefix}_${part} is missing`),
    ...(issuer !== undefined && !isIssuer(issuer)
      ? [`${prefix}_ISSUER is malformed (expected an https URL without a query; http on the loopback interface only)`]
      : []),
    ...(values.TYPE !== undefined && !['oidc', 'github'].includes(values.TYPE)
      ? [`${prefix}_TYPE is malformed (expected oidc | github)`]
      : []),
    ...(formats.label(title) ? [] : [`${prefix}_TITLE is malformed (expected 1 to 100 characters on one line)`]),
  ];
  mistakes.push(...wrong);
  if (wrong.length || !issuer || !client_id || !client_secret) return null;
  const bare = issuer.replace(/\/+$/, '');
  const type = values.TYPE === 'github' || (values.TYPE === undefined && bare === GITHUB) ? 'github' : 'oidc';
  const shown = { name: name.toLowerCase(), title, type, issuer: type === 'github' ? bare : issuer } as const;
  return Object.freeze({ ...shown, client_id, client_secret });
}

function isIssuer(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, search, hash, username, password } = new URL(text);
  if (search || hash || username || password) return false;
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.includes(hostname));
}

/** "Google", "My idp". */
function titleOf(name: string): string {
  return name.charAt(0) + name.slice(1).toLowerCase().replace(/_/g, ' ');
}
