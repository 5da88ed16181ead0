// Another provider: oidc-provider, a program that we did not write, with its own pages for logging in.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type * as Oidc from 'oidc-provider' with { 'resolution-mode': 'import' };
import type { Page, Person } from '../../support/identity/person';
import { visitor } from '../../support/identity/person';

export interface ForeignPerson {
  email?: string;
  email_verified?: boolean;
  name?: string;
}

export interface ForeignProvider {
  issuer: string;
  /** What it says of its people, by their id. */
  people: Map<string, ForeignPerson>;
  /** Logs in on its pages, from the address that a browser is sent to; answers the address that it is sent back to. */
  logIn(url: string, id: string): Promise<string>;
  settings(name?: string): Record<string, string>;
  close(): Promise<void>;
}

export const CLIENT_SECRET = 'a secret that nobody may see in a log';

export async function openForeignProvider(name = 'keycloak'): Promise<ForeignProvider> {
  (URL as { parse?: unknown }).parse ??= (text: string, base?: string): URL | null =>
    URL.canParse(text, base) ? new URL(text, base) : null;
  const { default: Provider } = await import('oidc-provider');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const people = new Map<string, ForeignPerson>();
  const self: ForeignProvider = {
    ...{ issuer, people },
    logIn: (url, id) => logInAt(issuer, url, id),
    settings: (as = name) => ({
      [`LOGIN_${as.toUpperCase()}_ISSUER`]: issuer,
      [`LOGIN_${as.toUpperCase()}_CLIENT_ID`]: 'platform',
      [`LOGIN_${as.toUpperCase()}_CLIENT_SECRET`]: CLIENT_SECRET,
    }),
    close: () => closeServer(server),
  };
  server.on('request', new Provider(issuer, configurationOf(name, people)).callback());
  return self;
}

function configurationOf(name: string, people: ForeignProvider['people']): Oidc.Configuration {
  return {
    clients: [
      {
        client_id: 'platform',
        client_secret: CLIENT_SECRET,
        // The port of the service is free: it is known only when it runs.
        application_type: 'native',
        redirect_uris: [`http://127.0.0.1/login/with/${name}/callback`],
      },
    ],
    claims: { email: ['email', 'email_verified'], profile: ['name'] },
    cookies: { keys: ['test'] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people.get(id) }) }),
  };
}

async function logInAt(issuer: string, url: string, id: string): Promise<string> {
  const { open, submit } = visitor({ url: issuer });
  let page: Page = await open(url);
  for (let turn = 0; turn < 3 && page.url.startsWith(issuer); turn += 1) {
    const action = /<form[^>]*action="([^"]+)"/.exec(page.html)?.[1];
    if (!action) throw new Error(`${page.url} has no form: ${page.html.slice(0, 300)}`);
    const fields: Record<string, string> = page.html.includes('name="login"') ? { login: id, password: 'any' } : {};
    page = await submit({ ...page, url: new URL(action, page.url).href }, fields);
  }
  return page.url;
}

/** Presses the button of a provider on a page; answers the address that the browser is sent to. */
export async function pressProvider(
  person: Pick<Person, 'submit'>,
  page: Page,
  name: string,
  fields: Record<string, string> = {},
): Promise<{ url: string; page: Page }> {
  const form = new RegExp(`<form method="post" action="(/login/with/${name})">(.*?)</form>`, 's').exec(page.html);
  if (!form) throw new Error(`${page.url} has no button of ${name}`);
  const action = new URL(form[1] as string, page.url).href;
  const answer = await person.submit({ ...page, url: action, html: form[2] as string }, fields);
  return { url: answer.headers.get('refresh')?.replace(/^0; url=/, '') ?? '', page: answer };
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
