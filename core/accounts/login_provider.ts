// Other providers that people log in at: what the operator sets, and what such a provider says of a person.
// drivers/login_provider/ speaks to them.
import { mintSecret } from './tokens';

/** A provider of this installation, from LOGIN_<NAME>_ISSUER and its companions. */
export interface LoginProviderSetting {
  /** The name in the settings, in lower case: `google`. It is part of the address that the provider sends people to. */
  readonly name: string;
  /** Shown to people: "Google". */
  readonly title: string;
  readonly type: 'oidc' | 'github';
  /** Without a slash at its end for `github`; as it is written otherwise, since it is compared. */
  readonly issuer: string;
  readonly client_id: string;
  readonly client_secret: string;
}

/** What binds an answer to its request. Each is used once. */
export interface LoginChecks {
  state: string;
  nonce: string;
  /** Of PKCE (RFC 7636). */
  verifier: string;
}

export function mintLoginChecks(): LoginChecks {
  return { state: mintSecret(''), nonce: mintSecret(''), verifier: mintSecret('') };
}

/** Who logged in, by the word of the provider. */
export interface ProvidedLogin {
  issuer: string;
  /** Unique within the issuer, for ever. */
  subject: string;
  /** In lower case; null where the provider tells none. */
  email: string | null;
  /** Whether the provider has seen that the person reads the mail of the address. */
  email_verified: boolean;
  name: string | null;
  /** Whether the provider has asked for more than one factor (`amr` of RFC 8176). */
  multi_factor: boolean;
}

export interface LoginProviderClient {
  /** Where the browser is sent. @throws LoginProviderError */
  authorizationUrl(redirectUri: string, checks: LoginChecks): Promise<string>;
  /**
   * Redeems the code in the address that the provider has sent the browser to.
   * @param callback that address, as this server has it @throws LoginProviderError
   */
  finish(callback: URL, checks: LoginChecks): Promise<ProvidedLogin>;
}

/** Why nobody was logged in: a sentence for people. `cause_text` is for the log, and holds no secret. */
export class LoginProviderError extends Error {
  override readonly name = 'LoginProviderError';

  constructor(
    /** `denied`: the person or the provider said no. `invalid`: the answer was not what it must be. */
    readonly reason: 'unreachable' | 'denied' | 'invalid',
    message: string,
    readonly cause_text: string,
  ) {
    super(message);
  }
}
