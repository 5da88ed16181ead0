// What every page keeps to: no violation of axe at any width, light and dark, nothing wider than the screen, and no
// text that is cut, lies on another one or leaves its box.
import { overflow, violations, visit, WIDTHS, type Page } from './chromium';
import { geometryFaults } from './geometry';

/** From a small phone to a large screen. */
export const ALL_WIDTHS = [320, 390, 768, 1440, 2560];

/** Opens a page and holds it to the rules. */
export async function keepsTheRules(page: Page, place: string): Promise<void> {
  await visit(page, place);
  await asItStands(page);
}

/** The rules for a page that is open. */
export async function asItStands(page: Page): Promise<void> {
  for (const [index, width] of WIDTHS.entries()) {
    await page.setViewportSize({ width, height: 800 });
    // Colours and widths have nothing to do with each other: both colours are seen, at each width one more page.
    for (const colorScheme of index === 0 ? (['light', 'dark'] as const) : (['light'] as const)) {
      await page.emulateMedia({ colorScheme });
      expect([width, colorScheme, await violations(page)]).toEqual([width, colorScheme, []]);
    }
  }
  expect(await faultsOfRoom(page)).toEqual([]);
}

/** At each width, what is wrong with the room that a page takes. @param seen is called at each width */
export async function faultsOfRoom(page: Page, seen?: (width: number) => Promise<void>): Promise<string[]> {
  const faults: string[] = [];
  for (const width of ALL_WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    // What was drawn for the width before is drawn again, such as charts.
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
    const wider = await overflow(page);
    if (wider) faults.push(`${width}: ${wider} px wider than the screen`);
    faults.push(...(await geometryFaults(page)).map((fault) => `${width}: ${fault}`));
    await seen?.(width);
  }
  return faults;
}
