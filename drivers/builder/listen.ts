/**
 * Where servers listen whose command the platform has made: on a host in reach of the ingress of that host alone; in a
 * container that starts from a release image at the address that drivers/release_image/launch_layer.ts gives.
 */
export const LISTEN = '${SVC_LISTEN_ADDRESS:-127.0.0.1}';
