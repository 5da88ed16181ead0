// Dynamic client registration (RFC 7591): validation of the metadata of an unknown client.
import { formats } from '../formats/formats';
import { limits } from '../limits';
import { isRedirectUri } from './oauth';

/** The stored part of a registration request. */
export interface Registration {
  client_name: string;
  redirect_uris: string[];
  grant_types: string[];
}

/** Error codes of RFC 7591 section 3.2.2. */
type RegistrationMistake = 'invalid_redirect_uri' | 'invalid_client_metadata';

export class RegistrationError extends Error {
  override readonly name = 'RegistrationError';

  constructor(
    readonly code: RegistrationMistake,
    message: string,
  ) {
    super(message);
  }
}

/** Excludes the device grant, whose page cannot show where the code is sent. */
const GRANTED = ['authorization_code', 'refresh_token'];
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
const DEFAULT_NAME = 'Unnamed program';

/**
 * Parses a registration request. Unknown metadata is ignored (section 2); known but unsupported metadata is rejected.
 * @throws RegistrationError
 */
export function parseRegistration(body: unknown): Registration {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw metadata('The body must be a JSON object.');
  const { token_endpoint_auth_method, response_types, client_name, redirect_uris, grant_types } = body as Record<
    string,
    unknown
  >;
  if (token_endpoint_auth_method != null && token_endpoint_auth_method !== 'none')
    throw metadata('`token_endpoint_auth_method` must be none: this server gives no secrets to programs.');
  if (response_types != null && !sameItems(response_types, ['code']))
    throw metadata('`response_types` must be ["code"].');
  return {
    client_name: nameOf(client_name),
    redirect_uris: redirectUrisOf(redirect_uris),
    grant_types: grantTypesOf(grant_types),
  };
}

function nameOf(given: unknown): string {
  if (given == null) return DEFAULT_NAME;
  const name = typeof given === 'string' ? formats.label(given)?.value : undefined;
  if (name === undefined || [...name].length > limits.clientNameCharactersMax)
    throw metadata(`\`client_name\` must have 1 to ${limits.clientNameCharactersMax} characters on one line.`);
  // Bidirectional control characters could disguise the name on a page.
  if (/\p{Bidi_Control}|\p{Default_Ignorable_Code_Point}/u.test(name))
    throw metadata('`client_name` must not contain invisible characters.');
  return name;
}

function redirectUrisOf(given: unknown): string[] {
  if (!isTextList(given) || !given.length || given.length > limits.redirectUrisMax)
    throw new RegistrationError(
      'invalid_redirect_uri',
      `\`redirect_uris\` must be a list of 1 to ${limits.redirectUrisMax} addresses.`,
    );
  const wrong = given.findIndex((uri) => !/^https?:\/\//.test(uri) || !isRedirectUri(uri));
  if (wrong !== -1)
    throw new RegistrationError(
      'invalid_redirect_uri',
      `\`redirect_uris.${wrong}\` must be an https address, or http on 127.0.0.1, [::1] or localhost, ` +
        'without a wildcard, a fragment and a user name, of at most 500 characters.',
    );
  return [...new Set(given)];
}

function grantTypesOf(given: unknown): string[] {
  if (given == null) return ['authorization_code'];
  if (!isTextList(given) || !given.includes('authorization_code'))
    throw metadata('`grant_types` must be a list that contains authorization_code.');
  const unknown = given.find((grant) => ![...GRANTED, DEVICE].includes(grant));
  if (unknown !== undefined) throw metadata(`\`grant_types\` may contain ${GRANTED.join(' and ')} only.`);
  return GRANTED.filter((grant) => given.includes(grant));
}

function isTextList(given: unknown): given is string[] {
  return Array.isArray(given) && given.every((one) => typeof one === 'string');
}

function sameItems(given: unknown, expected: readonly string[]): boolean {
  return isTextList(given) && given.length === expected.length && given.every((one) => expected.includes(one));
}

function metadata(message: string): RegistrationError {
  return new RegistrationError('invalid_client_metadata', message);
}
