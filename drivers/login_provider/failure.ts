// Errors of a provider, as a message for the person and a log entry. Neither may contain a token, a code or a secret:
// the cause of openid-client errors contains the full response, and is dropped here.
import { LoginProviderError, type LoginProviderSetting } from '../../core/accounts/login_provider';
import { outboundErrorOf } from './guarded_fetch';

interface Answered {
  name?: string;
  code?: string;
  error?: string;
  error_description?: string;
  message?: string;
}

/** Format of OAuth and OpenID Connect error codes. */
const CODE = /^[a-z_]{1,40}$/;

export function failureOf({ title }: LoginProviderSetting, error: unknown): LoginProviderError {
  if (error instanceof LoginProviderError) return error;
  const outbound = outboundErrorOf(error);
  if (outbound)
    return new LoginProviderError(
      'unreachable',
      `${title} cannot be reached at the moment. Try again later, or log in another way.`,
      outbound.message,
    );
  const { name = '', code = '', error: oauthError = '', message = '' } = error as Answered;
  const word = CODE.test(oauthError) ? oauthError : '';
  if (name === 'AuthorizationResponseError')
    return new LoginProviderError('denied', `${title} did not log you in${word && ` (${word})`}.`, word || name);
  return new LoginProviderError(
    'invalid',
    `The answer of ${title} is not valid. Try again, and contact the operator if the error persists.`,
    [word || code, message.slice(0, 200)].filter(Boolean).join(': '),
  );
}
