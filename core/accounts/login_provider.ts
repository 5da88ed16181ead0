// External login providers: their settings, and the identity that they return. Implemented in drivers/login_provider/.
import { mintSecret } from './tokens';

/** A provider of this installation, from LOGIN_<NAME>_ISSUER and related settings. */
export interface LoginProviderSetting {
  /** The name in the settings, in lower case: `google`. It is part of the redirect URI. */
  readonly name: string;
  /** Display name: "Google". */
  readonly title: string;
  readonly type: 'oidc' | 'github';
  /** Without a trailing slash for `github`; otherwise unmodified, since it is compared. */
  readonly issuer: string;
  readonly client_id: string;
  readonly client_secret: string;
}

/** Values that bind a response to its request. Each is used once. */
export interface LoginChecks {
  state: string;
  nonce: string;
  /** Code verifier of PKCE (RFC 7636). */
  verifier: string;
}

export function mintLoginChecks(): LoginChecks {
  return { state: mintSecret(''), nonce: mintSecret(''), verifier: mintSecret('') };
}

/** The identity asserted by the provider. */
export interface ProvidedLogin {
  issuer: string;
  /** Unique within the issuer, and never reassigned. */
  subject: string;
  /** In lower case; null where the provider returns none. */
  email: string | null;
  /** Whether the provider has verified the address. */
  email_verified: boolean;
  name: string | null;
  /** Whether the provider used multi-factor authentication (`amr` of RFC 8176). */
  multi_factor: boolean;
}

export interface LoginProviderClient {
  /** Redirect target of the browser. @throws LoginProviderError */
  authorizationUrl(redirectUri: string, checks: LoginChecks): Promise<string>;
  /**
   * Exchanges the authorisation code of the callback.
   * @param callback URL of the callback, as configured for this server @throws LoginProviderError
   */
  finish(callback: URL, checks: LoginChecks): Promise<ProvidedLogin>;
}

/** Why a login failed: the message is for people. `cause_text` is for the log, and contains no secret. */
export class LoginProviderError extends Error {
  override readonly name = 'LoginProviderError';

  constructor(
    /** `denied`: rejected by the person or the provider. `invalid`: the response is invalid. */
    readonly reason: 'unreachable' | 'denied' | 'invalid',
    message: string,
    readonly cause_text: string,
  ) {
    super(message);
  }
}
