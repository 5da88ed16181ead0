// Values that no operator sets. They are part of `Config`, so that tests can start a service with others.

type Place = 'separate' | 'in_process';

export interface FixedValues {
  /** Where the ingress and the cache of CDN zones run. A process of its own serves on while this one restarts. */
  ingressProcess: Place;
  /** Where questions to the name server are answered. */
  dnsProcess: Place;
}

export const fixedValues: FixedValues = {
  ingressProcess: 'separate',
  dnsProcess: 'separate',
};
