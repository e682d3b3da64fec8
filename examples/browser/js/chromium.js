// Runs page.html in Chromium as a WebRTC peer. Usage: chromium.js CHROMIUM [FLAG...]. Each line of standard input is a
// command in JSON. For each command, the program writes one line of JSON.
const puppeteer = require('puppeteer-core'), fs = require('fs'), readline = require('readline');
const [executablePath, ...flags] = process.argv.slice(2);

async function main() {
  const browser = await puppeteer.launch({
    executablePath, headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP * ~NOTFOUND', '--allow-loopback-in-peer-connection', '--autoplay-policy=no-user-gesture-required',
      '--disable-features=WebRtcHideLocalIpsWithMdns', '--disable-background-networking', '--disable-background-timer-throttling',
      '--disable-renderer-backgrounding', '--disable-backgrounding-occluded-windows', ...flags],
  });
  const page = await browser.newPage();
  await page.setContent(fs.readFileSync(__dirname + '/page.html', 'utf8'));
  const say = value => process.stdout.write(JSON.stringify(value) + '\n');
  say({version: await browser.version()});
  for await (const line of readline.createInterface({input: process.stdin})) {
    const {command, argument} = JSON.parse(line);
    try {
      say({ok: await page.evaluate((command, argument) => peer[command](argument), command, argument) ?? null});
    } catch (error) {
      say({error: String(error)});
    }
  }
  await browser.close();
}

main().catch(error => { console.error(error); process.exit(1); });
