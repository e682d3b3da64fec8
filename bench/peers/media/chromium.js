// Runs Chromium as the sender: chromium.js CHROMIUM URL SECONDS STATS_JSON. URL is the address of the receiver's web
// server. The script starts the call when it receives the signal SIGUSR2. It needs puppeteer-core in NODE_PATH.
const puppeteer = require('puppeteer-core'), fs = require('fs');
const [executablePath, url, seconds, out] = process.argv.slice(2);
const MAX_BITRATE = 5_000_000;
const go = new Promise(begin => process.once('SIGUSR2', begin));
const sleep = seconds => new Promise(end => setTimeout(end, seconds * 1000));

async function main() {
  const browser = await puppeteer.launch({
    executablePath, headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-features=WebRtcHideLocalIpsWithMdns', '--disable-background-networking',
      '--disable-background-timer-throttling', '--disable-renderer-backgrounding', '--disable-backgrounding-occluded-windows'],
  });
  const page = await browser.newPage();
  await page.setContent(fs.readFileSync(__dirname + '/page.html', 'utf8'));
  console.log(await browser.version(), 'ready');
  await go;
  const begin = Date.now(), age = () => (Date.now() - begin) / 1000;
  const offer = await page.evaluate(most => makeOffer(most), MAX_BITRATE);
  const answer = await (await fetch(url + 'offer', {method: 'POST', body: JSON.stringify(offer)})).json();
  await page.evaluate(answer => pc.setRemoteDescription(answer), answer);
  const log = [];
  while (age() < Number(seconds)) {
    log.push({time_s: age(), ...await page.evaluate(() => stats())});
    await sleep(0.25);
  }
  fs.writeFileSync(out, JSON.stringify(log));
  await browser.close();
}

main().catch(error => { console.error(error); process.exit(1); });
