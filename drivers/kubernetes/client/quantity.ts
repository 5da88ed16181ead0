// Amounts as a cluster writes them: `250m`, `512Mi`, `1.5e3` (Kubernetes, "Quantity").

const UNITS: Record<string, number> = {
  ...{ n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
};

/** Cores, or bytes; null where it is no amount. */
export function parseQuantity(text: string): number | null {
  const [, number, unit = ''] = /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)([A-Za-z]{0,2})$/.exec(text) ?? [];
  const factor = UNITS[unit];
  const value = Number(number);
  return factor === undefined || number === undefined || Number.isNaN(value) ? null : value * factor;
}
