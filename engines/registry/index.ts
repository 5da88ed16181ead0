// The door of the container registry: all that other rooms and engines may import of it.
export { openEmbeddedRegistry } from './driver';
export { RegistryError, respondWithError } from './errors';
export { readBody, respond } from './exchange';
export { parseManifest } from './manifest';
export type { RegistryDriver, RegistryMirror } from './registry';
export { parseRepositoryName } from './routes';
export { openRegistryServer, type RegistryServerOptions } from './server';
export { issueToken } from './token_handler';
