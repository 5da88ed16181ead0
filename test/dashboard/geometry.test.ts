/** @tier heavy @quarter 2 @covers clients/dashboard/src */
// Every page from 320 to 2560 pixels: no text is cut, overlaps or leaves its box, no controls touch, nothing is wider
// than the screen.
import path from 'node:path';
import { visit, type Window } from '../support/dashboard/chromium';
import { pageAddress, PAGE_ROUTES } from '../support/dashboard/routes';
import { faultsOfRoom } from '../support/dashboard/page_rules';
import { worldDashboard } from '../support/dashboard/world_dashboard';
import type { World } from '../support/world';

let window: Window;
let world: World;
worldDashboard((opened) => void ({ world, window } = opened));

/** Where PICTURES names a folder, a picture of each page is written there at each width, to be looked at. */
const pictures = process.env.PICTURES;

test.each(PAGE_ROUTES)(
  '%s has room at every width',
  async (route) => {
    const { page } = window;
    await page.setViewportSize({ width: 1440, height: 900 });
    await visit(page, await pageAddress(world, route));
    const name = route.replace(/\W+/g, '_');
    const take = async (width: number): Promise<void> => {
      if (pictures)
        await page.screenshot({ path: path.join(pictures, `${name}-${width}.png`), fullPage: width < 2000 });
    };
    expect(await faultsOfRoom(page, take)).toEqual([]);
  },
  60_000,
);
