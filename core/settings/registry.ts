// Settings of the container registry.
import { authority, httpUrlSetting, integer, listenHost, oneOf, path, text } from '../setting_types';

export const registrySettings = {
  REGISTRY_PORT: integer({
    default: '5000',
    min: 0,
    max: 65535,
    description: 'Port of the container registry. 0 switches registries off.',
  }),
  PRESETS_FILE: path({
    default: null,
    description:
      'JSON file with images that are offered as presets: {"only_listed": false, "presets": [{"id": "…"}]}, see ' +
      'docs/IMAGES.md. Read at the start.',
  }),
  REGISTRY_LISTEN: listenHost({
    default: '127.0.0.1',
    description: 'Address on which the container registry listens.',
  }),
  REGISTRY_HOST: authority({
    default: null,
    derived: 'that of DISTRIBUTION_URL, else localhost:REGISTRY_PORT',
    description: 'Host name, and port if it is not 443, at which clients reach the container registry.',
  }),
  REGISTRY_CERT_FILE: path({
    default: null,
    description: 'Certificate chain (PEM) for REGISTRY_HOST. If not set, the registry speaks plain HTTP.',
  }),
  REGISTRY_KEY_FILE: path({ default: null, description: 'Private key (PEM) of REGISTRY_CERT_FILE.' }),
  DISTRIBUTION_URL: httpUrlSetting({
    default: null,
    description: 'URL of a Distribution server that stores the images. REGISTRY_PORT then only issues its tokens.',
  }),
  DISTRIBUTION_EVENTS_KEY: text({
    default: null,
    secret: true,
    description: 'Secret that notifications of the Distribution server carry as `Authorization: Bearer`.',
  }),
  REGISTRY_SIZE_GB: integer({
    default: '50',
    min: 1,
    max: 1_000_000,
    description: 'Maximum size of a registry in gigabytes.',
  }),
  RELEASE_IMAGES: oneOf(['needed', 'always'], {
    default: 'needed',
    description:
      'When releases are put into the registry as images. needed: where a cluster runs them ' +
      '(WORKLOADS=kubernetes). always: with every deployment, see docs/IMAGES.md.',
  }),
  RELEASE_BASE_IMAGE: text({
    default: 'docker.io/library/debian:bookworm-slim',
    description:
      'Base image of release images. Its C library must not be older than that of this host. The image is copied ' +
      'into the registry once, and again when this setting changes.',
  }),
};
