// Types of oidc-provider, which is an ECMAScript module: one place says how such a one is read.
import type * as oidc from 'oidc-provider' with { 'resolution-mode': 'import' };

export type Provider = oidc.default;
export type Adapter = oidc.Adapter;
export type AdapterConstructor = oidc.AdapterConstructor;
export type AdapterPayload = oidc.AdapterPayload;
export type Configuration = oidc.Configuration;
export type OauthContext = oidc.KoaContextWithOIDC;
export type Policy = oidc.interactionPolicy.DefaultPolicy;
export type OidcModule = typeof oidc & {
  /** By name: every way to answer that the library knows is on, and has no setting. */
  responseModesOf(provider: Provider): Map<string, unknown>;
};
