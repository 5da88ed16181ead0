// A client as an independent library (oauth4webapi) makes it.
import type * as Oauth from 'oauth4webapi' with { 'resolution-mode': 'import' };
import type { TestService } from '../../support/service';
import { logIn, type Page, type Person } from '../../support/identity/person';

export const REDIRECT = 'http://127.0.0.1:49152/callback';

export interface Asked {
  url: string;
  verifier: string;
  state: string;
}

export interface Client {
  server: Oauth.AuthorizationServer;
  client: Oauth.Client;
  /** A request for an authorisation. `parameters` change it; null takes one out. */
  ask(parameters?: Record<string, string | null>): Promise<Asked>;
  /** The address with the code, after the person has agreed. */
  agree(person: Person, asked: Asked, fields?: Record<string, string | string[] | null>): Promise<Page>;
  /** Tokens for the code in an address. @throws where the server or the library refuses */
  redeem(asked: Asked, page: Page, redirect?: string): Promise<Oauth.TokenEndpointResponse>;
  refresh(token: string): Promise<Oauth.TokenEndpointResponse>;
  revoke(token: string): Promise<void>;
  /** Tokens of a new authorisation. */
  connect(person: Person, parameters?: Record<string, string>): Promise<Oauth.TokenEndpointResponse>;
}

export async function openClient(service: Pick<TestService, 'url'>, clientId = 'platform-cli'): Promise<Client> {
  const oauth = await import('oauth4webapi');
  const insecure = { [oauth.allowInsecureRequests]: true };
  const issuer = new URL(service.url);
  const client: Oauth.Client = { client_id: clientId };
  const found = await oauth.discoveryRequest(issuer, { ...insecure, algorithm: 'oauth2' });
  const server = await oauth.processDiscoveryResponse(issuer, found);
  const self: Client = {
    server,
    client,
    async ask(parameters = {}) {
      const verifier = oauth.generateRandomCodeVerifier();
      const state = oauth.generateRandomState();
      const url = new URL(server.authorization_endpoint as string);
      const values: Record<string, string | null> = {
        client_id: clientId,
        redirect_uri: REDIRECT,
        response_type: 'code',
        scope: 'read deploy',
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state,
        device_name: 'laptop',
        ...parameters,
      };
      for (const [name, value] of Object.entries(values)) if (value !== null) url.searchParams.set(name, value);
      return { url: url.href, verifier, state };
    },
    async agree(person, asked, fields = {}) {
      let page = await person.open(asked.url);
      if (page.title === 'Log in') page = await logIn(person, page);
      return person.submit(page, { action: 'allow', ...fields });
    },
    async redeem(asked, page, redirect = REDIRECT) {
      const parameters = oauth.validateAuthResponse(server, client, new URL(page.url), asked.state);
      const answer = await oauth.authorizationCodeGrantRequest(
        ...([server, client, oauth.None(), parameters, redirect, asked.verifier, insecure] as const),
      );
      return oauth.processAuthorizationCodeResponse(server, client, answer);
    },
    async refresh(token) {
      const answer = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), token, insecure);
      return oauth.processRefreshTokenResponse(server, client, answer);
    },
    async revoke(token) {
      const answer = await oauth.revocationRequest(server, client, oauth.None(), token, insecure);
      await oauth.processRevocationResponse(answer);
    },
    async connect(person, parameters) {
      const asked = await self.ask(parameters);
      return self.redeem(asked, await self.agree(person, asked));
    },
  };
  return self;
}

/** The code of a refusal by the server; fails where there is none. */
export async function refusal(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    const { error: code } = error as { error?: string };
    if (code) return code;
    throw error;
  }
  throw new Error('it was not refused');
}
