// How callers prove who they are: keys, and access tokens of programs that people allow.
import { OAUTH_PATHS, SERVER_METADATA_PATH } from '../../core/accounts/oauth';
import { scopes, type ScopeRule } from '../../core/accounts/scopes';
import type { DocumentBuilder } from './builder';

/** @param baseUrl address of this installation, which is the issuer of its tokens */
export function useSecuritySchemes(builder: DocumentBuilder, baseUrl: string): void {
  builder.use('securitySchemes', 'bearer', () => ({
    type: 'http',
    scheme: 'bearer',
    description: 'A personal key (`svc_…`) or a project key (`svc_proj_…`).',
  }));
  builder.use('securitySchemes', 'oauth', () => {
    const described = Object.entries(scopes).map(([name, { description }]) => [name, description] as const);
    const tokenUrl = baseUrl + OAUTH_PATHS.token;
    const common = { tokenUrl, refreshUrl: tokenUrl, scopes: Object.fromEntries(described) };
    return {
      type: 'oauth2',
      description:
        'An access token (`svc_oauth_…`) of a program that a person allows: authorisation code with PKCE `S256`, ' +
        'or device code (RFC 8628; `deviceAuthorization` of OpenAPI 3.2). Programs have no secret.',
      flows: {
        authorizationCode: { authorizationUrl: baseUrl + OAUTH_PATHS.authorize, ...common },
        'x-deviceAuthorization': { deviceAuthorizationUrl: baseUrl + OAUTH_PATHS.deviceAuthorization, ...common },
      },
      'x-oauth2MetadataUrl': baseUrl + SERVER_METADATA_PATH,
    };
  });
}

/** What an operation asks for: a key or a token. */
export function securityOf(scope: ScopeRule): Record<string, string[]>[] {
  if (scope === 'none') return [];
  return [{ bearer: [] }, { oauth: scope === 'any' ? [] : [scope] }];
}
