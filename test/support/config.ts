// Values of the configuration that are no settings, for a service or a program of a test.
import type { Config } from '../../core/config';

/** To be spread into settings. */
export function withConfig(values: Partial<Config>): { TEST_CONFIG: string } {
  return { TEST_CONFIG: JSON.stringify(values) };
}

/** What `withConfig` has put into settings. */
export function configIn({ TEST_CONFIG }: Record<string, string | undefined>): Partial<Config> {
  return JSON.parse(TEST_CONFIG ?? '{}') as Partial<Config>;
}
