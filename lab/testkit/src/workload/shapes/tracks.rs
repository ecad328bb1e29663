//! A fleet's tracks: a position as POINT for each report, beside floats and doubles. It draws from a seed of its own, [`super::SEED`]
//! plus its number.

use std::f64::consts::TAU;
use std::io::{self, Write};

use crate::random::Random;

/// Vehicles of the fleet, and reports of an INSERT.
const VEHICLES: usize = 400;
const REPORTS: u32 = 10;
/// Millionths of a degree of latitude in a metre.
const MICRODEGREES: f64 = 8.983;

/// Where a vehicle is, and how it moves.
struct Vehicle {
    /// Millionths of degrees.
    latitude: f64,
    longitude: f64,
    /// In turns.
    heading: f64,
    /// Metres a second.
    speed: f64,
    metres: f64,
    /// Hundredths of a litre.
    fuel: f64,
}

/// Reports of 400 vehicles in no order, ten in each INSERT: positions of six decimals, headings as doubles that use all bits.
pub(super) fn tracks(out: &mut dyn Write, random: &mut Random, count: u32) -> io::Result<()> {
    writeln!(
        out,
        "CREATE DATABASE fleet; CREATE TABLE fleet.report(id BIGINT PRIMARY KEY, vehicle INT, at DATETIME(3), \
         place POINT NOT NULL SRID 4326, speed FLOAT, heading DOUBLE, fuel DOUBLE, odometer DOUBLE);"
    )?;
    let mut vehicles: Vec<Vehicle> = (0..VEHICLES).map(|_| Vehicle::parked(random)).collect();
    let mut milliseconds = 0u64;
    for id in 1..=count {
        milliseconds += random.below(60) as u64;
        let number = random.below(VEHICLES);
        let vehicle = &mut vehicles[number];
        vehicle.drive(random);
        let (comma, end) = match id % REPORTS {
            1 => ("INSERT INTO fleet.report VALUES ", ""),
            0 => (",", ";\n"),
            _ => (",", ""),
        };
        let end = if id == count { ";\n" } else { end };
        write!(
            out,
            "{comma}({id},{number},'2026-03-{:02} {:02}:{:02}:{:02}.{:03}',\
             ST_GeomFromText('POINT({:.6} {:.6})',4326),{:.1},{:e},{:.2},{:.3}){end}",
            1 + milliseconds / 86_400_000 % 28,
            milliseconds / 3_600_000 % 24,
            milliseconds / 60_000 % 60,
            milliseconds / 1000 % 60,
            milliseconds % 1000,
            vehicle.latitude.round() / 1e6,
            vehicle.longitude.round() / 1e6,
            vehicle.speed * 3.6,
            vehicle.heading * 360.0,
            vehicle.fuel / 100.0,
            vehicle.metres / 1000.0,
        )?;
    }
    Ok(())
}

impl Vehicle {
    fn parked(random: &mut Random) -> Vehicle {
        Vehicle {
            latitude: 52_400_000.0 + random.below(200_000) as f64,
            longitude: 13_200_000.0 + random.below(400_000) as f64,
            heading: random.below(360) as f64 / 360.0,
            speed: random.below(30) as f64,
            metres: random.below(200_000_000) as f64,
            fuel: 1000.0 + random.below(5000) as f64,
        }
    }

    /// Ten seconds on: it turns, and its place is known to within a metre.
    fn drive(&mut self, random: &mut Random) {
        self.speed = (self.speed + (random.below(401) as f64 - 200.0) / 100.0).clamp(0.0, 36.0);
        self.heading = (self.heading + (random.below(2001) as f64 - 1000.0) / 23_456.0).rem_euclid(1.0);
        let metres = self.speed * 10.0;
        self.metres += metres;
        self.fuel = if self.fuel < 300.0 { 6000.0 } else { self.fuel - metres / 120.0 };
        let (east, north) = (self.heading * TAU).sin_cos();
        self.latitude += north * metres * MICRODEGREES + (random.below(19) as f64 - 9.0);
        self.longitude += east * metres * MICRODEGREES * 1.64 + (random.below(19) as f64 - 9.0);
    }
}
