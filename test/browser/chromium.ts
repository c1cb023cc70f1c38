/** The browser that the tests drive: Debian's, without a sandbox, because tests run as root. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Undefined where none is installed. */
export const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  existsSync,
);

/** Nothing that calls home. */
const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const launchChromium = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM!, args: ARGUMENTS });
